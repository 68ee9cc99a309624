module github.com/drivebay/drivebay

go 1.26
