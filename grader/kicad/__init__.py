"""Reading KiCad designs: our own bounded readers for what the files say, kicad-cli for what they mean."""
