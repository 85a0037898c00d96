-- The checkpoint of a live generation that the log does not know: the generation has none then
-- (`position` is null), answers queries all the same, and is replaced by one that is rebuilt from
-- the log. Null where the generation can be trusted.
ALTER TABLE turnlog.projections ADD COLUMN refused text COLLATE "C";
