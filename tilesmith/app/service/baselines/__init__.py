"""Results of commits that later ones are compared with, by project and branch: what `tilesmith ci` asks for."""
