"""The studies of text networks: tables 6 to 9 of the course work."""
