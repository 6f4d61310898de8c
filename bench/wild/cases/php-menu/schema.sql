drop table if exists dish_words;
drop table if exists dish;
create table dish (id int primary key, section int not null, cents int not null);
create table dish_words (dish int, tongue text, words text, primary key (dish, tongue));
insert into dish select i, i % 15, 500 + i * 37 % 1900 from generate_series(1, 240) i;
insert into dish_words select i, t, 'dish ' || i || ' in ' || t from generate_series(1, 240) i, unnest(array['en', 'fr', 'de']) t;
analyze dish;
analyze dish_words;
