// Reads a whole list by cursor. Rows that are created or deleted meanwhile do not shift the pages.
import type { paths } from '../../src/contract/schema.gen.ts'
import type { AccordClient } from './client.ts'
import { unwrap } from './problem.ts'

type QueryOf<Paths, Path extends keyof Paths> = Paths[Path] extends { get: { parameters: { query?: infer Query } } }
  ? NonNullable<Query>
  : never

/** The paths of lists that have a cursor. */
export type ListPath<Paths = paths> = {
  [Path in keyof Paths & string]: 'cursor' extends keyof QueryOf<Paths, Path>
    ? Path extends `${string}{${string}`
      ? never
      : Path
    : never
}[keyof Paths & string]

/** Filters, sort keys and page size of a list. */
export type ListQuery<Path extends keyof Paths, Paths = paths> = Omit<QueryOf<Paths, Path>, 'cursor' | 'page'>

/** One record of a list. */
export type ListedRecord<Path extends keyof Paths, Paths = paths> = Paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': { data: (infer Each)[] } } } } }
}
  ? Each
  : never

interface Page {
  data: unknown[]
  meta: { next_cursor?: string | null }
}

/**
 * Yields the records of a list, page after page. `per_page` sets the size of a page, 100 unless
 * given. With `fields`, the other keys of a record are missing. Throws AccordProblem.
 */
export function listAll<Paths extends object, Path extends ListPath<Paths>>(
  client: AccordClient<Paths>,
  path: Path,
  query: ListQuery<Path, Paths> & { fields: string[] },
): AsyncGenerator<Partial<ListedRecord<Path, Paths>>, void>
export function listAll<Paths extends object, Path extends ListPath<Paths>>(
  client: AccordClient<Paths>,
  path: Path,
  query?: ListQuery<Path, Paths>,
): AsyncGenerator<ListedRecord<Path, Paths>, void>
export async function* listAll<Paths extends object, Path extends ListPath<Paths>>(
  client: AccordClient<Paths>,
  path: Path,
  query?: ListQuery<Path, Paths>,
): AsyncGenerator<ListedRecord<Path, Paths>, void> {
  // The types of openapi-fetch cannot resolve a path that is a type parameter.
  const get = client.GET as unknown as (
    path: string,
    init: { params: { query: object } },
  ) => Promise<{ data?: Page; error?: unknown; response: Response }>
  let cursor: string | null | undefined = ''
  while (cursor !== null && cursor !== undefined) {
    const page: Page = await unwrap(get(path, { params: { query: { per_page: 100, ...query, cursor } } }))
    yield* page.data as ListedRecord<Path, Paths>[]
    cursor = page.meta.next_cursor
  }
}
