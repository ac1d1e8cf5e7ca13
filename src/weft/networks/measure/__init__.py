"""What a network costs, is made of and sees, found without training it."""
