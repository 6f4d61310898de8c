package items

type Item struct {
	Name string `json:"name"`
}

func All() []Item { return []Item{{Name: "lamp"}, {Name: "chair"}} }
