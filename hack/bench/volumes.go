package main

// volumeRows are the budgets of volumes and of their CSI driver.
func volumeRows(binary string) (rows []row, err error) {
	for _, measure := range []func() ([]row, error){statsRows, costRows, listRows, func() ([]row, error) { return loopRows(binary) }} {
		more, err := measure()
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
