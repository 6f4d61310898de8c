create index on six_accounts (lower(email));
analyze six_accounts;
