"""The skills that come with Fleet: what they say, and how they get to where agents look for them."""
