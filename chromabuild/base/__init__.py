"""What every part may import: errors, files, settings, the words for numbers."""
