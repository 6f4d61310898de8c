drop table if exists go_count_torrents;
create table go_count_torrents (id integer primary key, name text not null, hidden boolean not null);
insert into go_count_torrents select n, 'name of torrent ' || n, n % 50 = 0 from generate_series(1, 300000) n;
vacuum analyze go_count_torrents;
