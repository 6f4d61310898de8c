create table if not exists garment (id int primary key, tags text, colours text, sizes text);
insert into garment
select id, 'new,wool,winter', 'red,blue,green,black', 'xs,s,m,l,xl' from generate_series(1, 500) id
on conflict do nothing;
analyze garment;
