package hostsim

type mapped struct{}

func (m *mapped) lost(*device) {}
