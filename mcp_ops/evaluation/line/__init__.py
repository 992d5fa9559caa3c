"""The scenario line: its model, its file, and the sentence for a line that is wrong."""
