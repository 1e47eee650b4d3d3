"""Proteins on DNA other than histones: read from a structure with their DNA, and placed at their sites."""
