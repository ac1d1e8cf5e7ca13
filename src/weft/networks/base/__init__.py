"""What families are built from: network, backbone of blocks, text encoder, a class from outside."""
