"""The HTML report of a build, and the pictures in it."""
