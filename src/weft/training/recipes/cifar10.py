RECIPES: tuple[str, ...] = ()
