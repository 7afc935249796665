package support

var desks = []desk{bikes, hosting, energy, library}
