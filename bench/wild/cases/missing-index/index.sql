create index if not exists missing_index_users_email on missing_index_users (lower(email));
analyze missing_index_users;
