/**
 * The tables, and the function that runs a commit where the data is: one statement is one round trip and one transaction.
 * Locks are taken on the names of keys and logs, in one order for all processes, so that nobody waits in a circle and
 * absent keys can be claimed as safely as present ones.
 */

const TABLES = `
  CREATE TABLE entries (key text COLLATE "C" PRIMARY KEY, value text NOT NULL, version bigint NOT NULL, expires bigint);
  CREATE INDEX entries_by_expiry ON entries (expires) WHERE expires IS NOT NULL;
  CREATE TABLE logs (log text COLLATE "C" PRIMARY KEY, next bigint NOT NULL);
  CREATE TABLE log_entries (log text COLLATE "C", position bigint, value text NOT NULL, PRIMARY KEY (log, position));
  CREATE SEQUENCE versions;

  CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;`

/** One step: gives its result, or raises VV001 with the reason of the conflict. */
const STEP = `
  CREATE FUNCTION step(op jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    k text := op->>'key';
    l text := op->>'log';
    clock bigint := now_ms();
    kept entries%ROWTYPE;
    present boolean := false;
    made bigint;
    total numeric;
    ends bigint := clock + ceil((op->>'ttl')::numeric)::bigint;
  BEGIN
    IF k IS NOT NULL THEN
      SELECT * INTO kept FROM entries WHERE key = k AND (expires IS NULL OR expires > clock);
      present := FOUND;
    END IF;
    CASE op->>'op'
    WHEN 'check' THEN
      IF kept.version IS DISTINCT FROM (op->>'version')::bigint THEN RAISE SQLSTATE 'VV001' USING MESSAGE = 'version'; END IF;
      RETURN '{}';
    WHEN 'put', 'delete' THEN
      IF (op->>'ifAbsent')::boolean AND present THEN RAISE SQLSTATE 'VV001' USING MESSAGE = 'present'; END IF;
      IF op ? 'ifVersion' AND kept.version IS DISTINCT FROM (op->>'ifVersion')::bigint THEN
        RAISE SQLSTATE 'VV001' USING MESSAGE = CASE WHEN present THEN 'version' ELSE 'absent' END;
      END IF;
      IF op->>'op' = 'delete' THEN
        DELETE FROM entries WHERE key = k;
        RETURN '{}';
      END IF;
      made := nextval('versions');
      INSERT INTO entries VALUES (k, op->>'value', made, ends)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires;
      RETURN jsonb_build_object('version', made);
    WHEN 'add' THEN
      IF present AND kept.value !~ '^(0|-?[1-9][0-9]{0,15})$' THEN RAISE SQLSTATE 'VV001' USING MESSAGE = 'number'; END IF;
      total := CASE WHEN present THEN kept.value::numeric ELSE 0 END;
      IF abs(total) > 9007199254740991 THEN RAISE SQLSTATE 'VV001' USING MESSAGE = 'number'; END IF;
      total := total + (op->>'by')::numeric;
      IF abs(total) > 9007199254740991 OR total < (op->>'min')::numeric OR total > (op->>'max')::numeric THEN
        RAISE SQLSTATE 'VV001' USING MESSAGE = 'range';
      END IF;
      made := nextval('versions');
      INSERT INTO entries VALUES (k, total::text, made, CASE WHEN present THEN kept.expires ELSE ends END)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires;
      RETURN jsonb_build_object('version', made, 'sum', total);
    WHEN 'append' THEN
      INSERT INTO logs VALUES (l, 2) ON CONFLICT (log) DO UPDATE SET next = logs.next + 1 RETURNING next - 1 INTO made;
      IF made IS DISTINCT FROM coalesce((op->>'at')::bigint, made) THEN RAISE SQLSTATE 'VV001' USING MESSAGE = 'position'; END IF;
      INSERT INTO log_entries VALUES (l, made, op->>'value');
      RETURN jsonb_build_object('position', made);
    WHEN 'trim' THEN
      DELETE FROM log_entries WHERE log = l AND position < (op->>'before')::bigint;
      RETURN '{}';
    END CASE;
  END $$;`

/** Several commits, each for itself: one that conflicts undoes its own steps and no others. */
const COMMIT = `
  CREATE FUNCTION commit_all(commits jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    name_lock bigint;
    ops jsonb;
    op jsonb;
    at_step int;
    results jsonb[];
    outcomes jsonb[] := '{}';
  BEGIN
    FOR name_lock IN
      SELECT DISTINCT hashtextextended(coalesce(step->>'key', step->>'log'), 7420)
      FROM jsonb_array_elements(commits) AS one, jsonb_array_elements(one) AS step ORDER BY 1
    LOOP
      PERFORM pg_advisory_xact_lock(name_lock);
    END LOOP;
    FOR ops IN SELECT * FROM jsonb_array_elements(commits) LOOP
      at_step := 0;
      results := '{}';
      BEGIN
        FOR op IN SELECT * FROM jsonb_array_elements(ops) LOOP
          results := results || step(op);
          at_step := at_step + 1;
        END LOOP;
        outcomes := outcomes || jsonb_build_object('ok', true, 'results', to_jsonb(results));
      EXCEPTION WHEN SQLSTATE 'VV001' THEN
        outcomes := outcomes || jsonb_build_object('ok', false, 'index', at_step, 'reason', SQLERRM);
      END;
    END LOOP;
    RETURN to_jsonb(outcomes);
  END $$;`

/** The same step, all but `append`, for those who need not undo others: gives its result, or `no` with the reason of the conflict. */
const TRY_STEP = `
  CREATE FUNCTION try_step(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
  DECLARE
    k text := op->>'key';
    clock bigint := now_ms();
    ends bigint;
    seen bigint;
    before text;
    until bigint;
    made bigint;
    total numeric;
  BEGIN
    CASE op->>'op'
    WHEN 'put' THEN
      ends := clock + ceil((op->>'ttl')::numeric)::bigint;
      IF op ? 'ifVersion' THEN
        UPDATE entries SET value = op->>'value', version = nextval('versions'), expires = ends
          WHERE key = k AND version = (op->>'ifVersion')::bigint AND (expires IS NULL OR expires > clock) RETURNING version INTO made;
        IF NOT FOUND THEN
          PERFORM 1 FROM entries WHERE key = k AND (expires IS NULL OR expires > clock);
          RETURN jsonb_build_object('no', CASE WHEN FOUND THEN 'version' ELSE 'absent' END);
        END IF;
      ELSIF (op->>'ifAbsent')::boolean THEN
        INSERT INTO entries AS kept VALUES (k, op->>'value', nextval('versions'), ends)
          ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires
          WHERE kept.expires <= clock RETURNING version INTO made;
        IF NOT FOUND THEN RETURN '{"no":"present"}'; END IF;
      ELSE
        INSERT INTO entries VALUES (k, op->>'value', nextval('versions'), ends)
          ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires
          RETURNING version INTO made;
      END IF;
      RETURN jsonb_build_object('version', made);
    WHEN 'check' THEN
      SELECT version INTO seen FROM entries WHERE key = k AND (expires IS NULL OR expires > clock);
      IF seen IS DISTINCT FROM (op->>'version')::bigint THEN RETURN '{"no":"version"}'; END IF;
      RETURN '{}';
    WHEN 'delete' THEN
      IF op ? 'ifVersion' THEN
        SELECT version INTO seen FROM entries WHERE key = k AND (expires IS NULL OR expires > clock);
        IF seen IS DISTINCT FROM (op->>'ifVersion')::bigint THEN
          RETURN jsonb_build_object('no', CASE WHEN seen IS NULL THEN 'absent' ELSE 'version' END);
        END IF;
      END IF;
      DELETE FROM entries WHERE key = k;
      RETURN '{}';
    WHEN 'add' THEN
      SELECT value, expires INTO before, until FROM entries WHERE key = k AND (expires IS NULL OR expires > clock);
      IF NOT FOUND THEN
        before := '0';
        until := clock + ceil((op->>'ttl')::numeric)::bigint;
      END IF;
      IF before !~ '^(0|-?[1-9][0-9]{0,15})$' THEN RETURN '{"no":"number"}'; END IF;
      total := before::numeric;
      IF abs(total) > 9007199254740991 THEN RETURN '{"no":"number"}'; END IF;
      total := total + (op->>'by')::numeric;
      IF abs(total) > 9007199254740991 OR total < (op->>'min')::numeric OR total > (op->>'max')::numeric THEN
        RETURN '{"no":"range"}';
      END IF;
      INSERT INTO entries VALUES (k, total::text, nextval('versions'), until)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires
        RETURNING version INTO made;
      RETURN jsonb_build_object('version', made, 'sum', total);
    WHEN 'trim' THEN
      DELETE FROM log_entries WHERE log = op->>'log' AND position < (op->>'before')::bigint;
      RETURN '{}';
    END CASE;
  END $$;`

/**
 * Several commits without a way back for each, which costs more than most commits themselves. One that conflicts in its first step
 * has done nothing yet; one that does so later undoes all (VV002), and they are sent again to commit_all. What they append is written
 * at the end, all at once: the counter of a log is one row for everybody.
 */
const COMMIT_GROUP = `
  CREATE FUNCTION commit_group(commits jsonb) RETURNS jsonb LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    ops jsonb;
    op jsonb;
    made jsonb;
    refused text;
    results jsonb[];
    outcomes jsonb[] := '{}';
    at_log text;
    place bigint;
    next_places jsonb := '{}';
    to_logs text[] := '{}';
    to_places bigint[] := '{}';
    texts text[] := '{}';
  BEGIN
    PERFORM pg_advisory_xact_lock(name_lock) FROM (
      SELECT DISTINCT hashtextextended(coalesce(step->>'key', step->>'log'), 7420) AS name_lock
      FROM jsonb_array_elements(commits) AS one, jsonb_array_elements(one) AS step ORDER BY 1
    ) AS in_order;
    FOR ops IN SELECT * FROM jsonb_array_elements(commits) LOOP
      refused := NULL;
      results := '{}';
      FOR op IN SELECT * FROM jsonb_array_elements(ops) LOOP
        IF op->>'op' = 'append' THEN
          at_log := op->>'log';
          place := (next_places->>at_log)::bigint;
          IF place IS NULL THEN
            SELECT next INTO place FROM logs WHERE log = at_log;
            place := coalesce(place, 1);
          END IF;
          IF (op->>'at')::bigint <> place THEN refused := 'position';
          ELSE
            next_places := next_places || jsonb_build_object(at_log, place + 1);
            to_logs := to_logs || at_log;
            to_places := to_places || place;
            texts := texts || (op->>'value');
            made := jsonb_build_object('position', place);
          END IF;
        ELSE
          IF op->>'op' = 'trim' AND cardinality(texts) > 0 THEN
            INSERT INTO log_entries SELECT * FROM unnest(to_logs, to_places, texts);
            to_logs := '{}';
            to_places := '{}';
            texts := '{}';
          END IF;
          made := try_step(op);
          refused := made->>'no';
        END IF;
        IF refused IS NULL THEN results := results || made;
        ELSIF results = '{}' THEN EXIT;
        ELSE RAISE SQLSTATE 'VV002';
        END IF;
      END LOOP;
      IF refused IS NULL THEN outcomes := outcomes || jsonb_build_object('ok', true, 'results', to_jsonb(results));
      ELSE outcomes := outcomes || jsonb_build_object('ok', false, 'index', 0, 'reason', refused);
      END IF;
    END LOOP;
    IF next_places <> '{}' THEN
      INSERT INTO log_entries SELECT * FROM unnest(to_logs, to_places, texts);
      INSERT INTO logs SELECT key, value::bigint FROM jsonb_each_text(next_places)
        ON CONFLICT (log) DO UPDATE SET next = excluded.next;
    END IF;
    RETURN to_jsonb(outcomes);
  END $$;`

/** Each brings the tables from its index to the next version. Never change one that was released: add another. */
export const MIGRATIONS: readonly string[] = [TABLES + STEP + COMMIT, TRY_STEP + COMMIT_GROUP]
