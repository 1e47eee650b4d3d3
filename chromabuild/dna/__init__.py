"""DNA: base-pair steps, helical paths, linkers, sugar-phosphate backbone."""
