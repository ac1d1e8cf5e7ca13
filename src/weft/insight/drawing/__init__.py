"""Pictures and texts that several lenses draw."""
