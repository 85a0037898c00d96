-- The checkpoint of a live copy that the log does not know: the copy has none then (`position` is null), answers queries all
-- the same, and is replaced by one that is built anew from the log. Null where the copy can be trusted.
ALTER TABLE turnlog.projections ADD COLUMN refused text COLLATE "C";
