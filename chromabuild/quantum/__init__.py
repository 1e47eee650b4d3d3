"""Electronic structure of small pieces, by our plane-wave program chromaqm."""
