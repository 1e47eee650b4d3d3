"""Histone octamers."""
