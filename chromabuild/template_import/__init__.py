"""A nucleosome structure of the user's becomes a template: read, recognised, completed, clash-free."""
