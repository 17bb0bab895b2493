// Runs the client programs of PostgreSQL: pg_dump writes a database to a file, pg_restore turns the
// file into SQL, and psql runs the SQL to replace a database.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { type Kysely, sql } from 'kysely'
import { syncPath } from '../disk.ts'
import { libpqUrl } from './hosts.ts'
import { splitPassword } from './url.ts'

export class MissingProgramError extends Error {
  constructor(program: string, cause: unknown) {
    super(
      `${program} is missing. Install the Debian package postgresql-client, in the version of the server or newer.`,
      { cause },
    )
    this.name = 'MissingProgramError'
  }
}

/** Starts a program. The password is passed in the environment, which other users cannot read. */
function start(program: string, args: readonly string[], stdio: SpawnOptions['stdio'], password: string | null) {
  const env = password === null ? process.env : { ...process.env, PGPASSWORD: password }
  const child = spawn(program, args, { stdio, env })
  return { child, done: ended(program, child) }
}

/** Resolves when the program ends. Rejects with the first error that it wrote to standard error. */
function ended(program: string, child: ChildProcess): Promise<void> {
  let complaint = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    complaint = (complaint + bytes.toString('utf8')).slice(-10_000)
  })
  return new Promise((resolve, reject) => {
    child.on('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'ENOENT'
          ? new MissingProgramError(program, cause)
          : new Error(`${program} cannot be started: ${cause.message}`, { cause }),
      ),
    )
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} failed: ${firstOf(complaint)}`)),
    )
  })
}

/**
 * Returns the first error and its detail as one line. Later errors result from the first. Returns
 * the last line when no line is an error.
 */
function firstOf(complaint: string): string {
  const lines = complaint.trim().split('\n')
  const first = lines.findIndex((line) => /error:|ERROR:|FATAL:/.test(line))
  const shown = first < 0 ? lines.slice(-1) : lines.slice(first, first + 2)
  return shown
    .filter((line, at) => at === 0 || /detail:|DETAIL:/.test(line))
    .map((line) => line.replace(/^.*?(error|ERROR|FATAL|detail|DETAIL): +/, ''))
    .join('; ')
}

/** Dumps the data of the snapshot to a new file. Resolves after the file is synced to the disk. */
export async function dumpDatabase(url: string, snapshot: Kysely<unknown>, path: string): Promise<void> {
  const { rows } = await sql<{ id: string; schema: string }>`
    select pg_export_snapshot() as id, current_schema() as schema`.execute(snapshot)
  const { id = '', schema = '' } = rows[0] ?? {}
  const { url: dbname, password } = splitPassword(libpqUrl(url))
  const { done } = start(
    'pg_dump',
    [
      '--format=custom',
      '--no-owner',
      '--no-privileges',
      '--no-password',
      `--schema="${schema}"`,
      `--snapshot=${id}`,
      `--file=${path}`,
      `--dbname=${dbname}`,
    ],
    ['ignore', 'ignore', 'pipe'],
    password,
  )
  await done
  syncPath(path)
}

/** The contents of a dump that can be read without a database. */
export interface DumpContents {
  /** The number of rows of each table. */
  rows: ReadonlyMap<string, number>
  /** The names of the applied migrations. */
  migrations: string[]
}

/** Reads a whole dump. Rejects when the dump is damaged. */
export async function readDump(path: string): Promise<DumpContents> {
  const { child, done } = start('pg_restore', ['--data-only', '--file=-', path], ['ignore', 'pipe', 'pipe'], null)
  const rows = new Map<string, number>()
  const migrations: string[] = []
  let table: string | null = null
  async function read(): Promise<void> {
    if (child.stdout === null) return
    for await (const line of createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (table === null) {
        table = /^COPY (?:"[^"]+"|\w+)\."?(\w+)"? \(.*\) FROM stdin;$/.exec(line)?.[1] ?? null
        if (table !== null) rows.set(table, 0)
      } else if (line === '\\.') table = null
      else {
        rows.set(table, (rows.get(table) ?? 0) + 1)
        if (table === 'migrations') migrations.push(migrationIn(line))
      }
    }
  }
  await Promise.all([done, read()])
  return { rows, migrations }
}

/**
 * Returns the name of a migration from its row in the dump. The order of its two columns may vary.
 */
const migrationIn = (line: string): string => line.split('\t').find((each) => /^\d{4}_/.test(each)) ?? ''

/**
 * Removes the tables and functions of the schema, except those of extensions. `pg_restore --clean`
 * is not used, because it removes only tables in the dump, and would leave tables that a newer
 * version has created.
 */
const clearSchema = `
set client_min_messages = warning;
set lock_timeout = '10s';
do $$
declare
  own regnamespace := current_schema()::regnamespace;
  each record;
  routines text[];
  routine text;
begin
  for each in
    select relname as name, case relkind when 'v' then 'view' when 'm' then 'materialized view'
      when 'S' then 'sequence' else 'table' end as kind
    from pg_class where relnamespace = own and relkind in ('r', 'p', 'v', 'm', 'S') and not exists (select from pg_depend
      where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')
    order by relkind = 'S'
  loop
    execute format('drop %s if exists %s.%I cascade', each.kind, own, each.name);
  end loop;
  routines := array(select oid::regprocedure::text from pg_proc where pronamespace = own and not exists (select
    from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e'));
  foreach routine in array routines loop
    execute format('drop routine if exists %s cascade', routine);
  end loop;
end $$;
create extension if not exists pg_trgm;
`

/**
 * Replaces the tables of the database with those of a dump, in one transaction. After a failure the
 * database is as it was.
 */
export async function restoreDump(url: string, schema: string, path: string): Promise<void> {
  await assertSchema(schema, path)
  const { url: dbname, password } = splitPassword(libpqUrl(url))
  const script = start(
    'pg_restore',
    ['--file=-', `--schema=${schema}`, '--no-owner', '--no-privileges', path],
    ['ignore', 'pipe', 'pipe'],
    null,
  )
  const target = start(
    'psql',
    ['--no-psqlrc', '--quiet', '--no-password', '--set=ON_ERROR_STOP=1', '--single-transaction', '--file=-', dbname],
    ['pipe', 'ignore', 'pipe'],
    password,
  )
  const { stdin } = target.child
  // Ignored, because `target.done` reports the failure that closed the input.
  stdin?.on('error', () => undefined)
  stdin?.write(clearSchema)
  if (stdin) script.child.stdout?.pipe(stdin, { end: false })
  const isWhole = script.done.then(
    () => void stdin?.end(),
    (cause: unknown) => {
      // psql is killed, because at the end of its input it would commit half a dump.
      target.child.kill()
      throw cause
    },
  )
  const written = target.done.catch((cause: unknown) => {
    script.child.kill()
    // Without this, `close` of pg_restore would wait for ever for a reader of its output.
    script.child.stdout?.destroy()
    throw cause
  })
  const [read, wrote] = await Promise.allSettled([isWhole, written])
  if (wrote.status === 'rejected' && !target.child.killed) throw wrote.reason
  if (read.status === 'rejected') throw read.reason
  if (wrote.status === 'rejected') throw wrote.reason
}

/** Throws if the dump is from another schema, because pg_restore would then restore nothing. */
async function assertSchema(schema: string, path: string): Promise<void> {
  const { child, done } = start('pg_restore', ['--list', path], ['ignore', 'pipe', 'pipe'], null)
  let list = ''
  child.stdout?.on('data', (bytes: Buffer) => {
    list += bytes.toString('utf8')
  })
  await done
  if (!list.includes(` TABLE DATA ${schema} migrations `))
    throw new Error(`The dump has no tables for the schema ${schema}, which is the first one in the search path`)
}
