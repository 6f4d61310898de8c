-- Nothing to read: the queries of this app only wait.
SELECT 1;
