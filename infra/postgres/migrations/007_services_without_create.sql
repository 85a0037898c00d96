-- The read-model version that an instance answers from; null where a release before this one has not said it.
ALTER TABLE turnlog.instances ADD COLUMN read_models integer;

-- The SQL that makes the tables of each version, empty. Only the owner writes it: the functions below run it as the owner.
CREATE TABLE turnlog.versions (version integer PRIMARY KEY, ddl text NOT NULL);

-- Generations of the read models are schemas that come, change places and go while services run. These functions do so as the
-- owner, and with nothing but those schemas, so that services need no right to create anything.

-- infra/postgres/readModels/version.ts gives the same names.
CREATE FUNCTION turnlog.generation_name(of_version integer, role text) RETURNS name
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF role = 'live' THEN RETURN 'turnlog_v' || of_version; END IF;
  IF role IN ('first', 'building', 'retired') THEN RETURN 'turnlog_v' || of_version || '_' || role; END IF;
  RAISE EXCEPTION 'there is no generation %', role;
END $$;

-- Lets everybody who may use the schema turnlog read and write a generation.
CREATE FUNCTION turnlog.share_generation(schema name) RETURNS void
LANGUAGE plpgsql STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE service name;
BEGIN
  FOR service IN
    SELECT DISTINCT pg_get_userbyid(right_of.grantee) FROM pg_namespace, aclexplode(nspacl) AS right_of
    WHERE nspname = 'turnlog' AND right_of.privilege_type = 'USAGE' AND right_of.grantee NOT IN (0, nspowner)
  LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', schema, service);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO %I', schema, service);
  END LOOP;
END $$;

CREATE FUNCTION turnlog.drop_generation(of_version integer, role text) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
  EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', turnlog.generation_name(of_version, role));
END $$;

CREATE FUNCTION turnlog.move_generation(of_version integer, role text, to_role text) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I',
    turnlog.generation_name(of_version, role), turnlog.generation_name(of_version, to_role));
END $$;

CREATE FUNCTION turnlog.make_generation(of_version integer, role text) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE schema name := turnlog.generation_name(of_version, role);
BEGIN
  PERFORM turnlog.drop_generation(of_version, role);
  EXECUTE format('CREATE SCHEMA %I', schema);
  PERFORM set_config('search_path', quote_ident(schema), true);
  EXECUTE (SELECT ddl FROM turnlog.versions WHERE version = of_version);
  PERFORM turnlog.share_generation(schema);
END $$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA turnlog FROM PUBLIC;
