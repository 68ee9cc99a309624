package sysfs

// Entries are the files, links and folders of one drive, device or filesystem. They are removed
// together.
type Entries struct {
	Tree  *Tree
	Owner owner // hides them while it flickers
	nodes []*Node
}

func (e *Entries) Add(path string, n *Node) *Node {
	n.owner = e.Owner
	e.nodes = append(e.nodes, e.Tree.Put(path, n))
	return n
}

func (e *Entries) File(path, text string)            { e.Add(path, &Node{Text: text}) }
func (e *Entries) Live(path string, f func() string) { e.Add(path, &Node{Read: f}) }
func (e *Entries) Link(path, target string)          { e.Add(path, &Node{Link: Relative(path, target)}) }

// Files adds several files to a folder: name, text, name, text ...
func (e *Entries) Files(dir string, nameText ...string) {
	for i := 0; i+1 < len(nameText); i += 2 {
		e.File(dir+"/"+nameText[i], nameText[i+1])
	}
}

// Folders adds folders that stay when they are empty.
func (e *Entries) Folders(paths ...string) {
	for _, path := range paths {
		n := e.Tree.folder(path)
		n.Keep = true
		e.nodes = append(e.nodes, n)
	}
}

// Leave removes all entries.
func (e *Entries) Leave() {
	for _, n := range e.nodes {
		if n.kids != nil {
			n.Keep = false
		}
		e.Tree.Drop(n)
	}
	e.nodes = nil
}
