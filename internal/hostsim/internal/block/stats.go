package block

// DriveStats counts the use of a drive.
type DriveStats struct {
	Bay       string `json:"bay,omitempty"`
	Name      string `json:"name,omitempty"`
	Serial    string `json:"serial"`
	Opens     int    `json:"opens"`
	Pages     int    `json:"pages"`
	Reads     int    `json:"reads"`
	Writes    int    `json:"writes"`
	Wakeups   int    `json:"wakeups"`
	SelfTests int    `json:"selfTests"`
}
