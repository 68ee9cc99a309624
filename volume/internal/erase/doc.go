// Package erase proves that a piece of a drive is blank, and wipes what volumes leave behind.
package erase
