// Reads a whole list by cursor. Rows that are created or deleted meanwhile do not shift the pages.
import type { paths } from '../../src/contract/schema.gen.ts'
import type { AccordClient } from './client.ts'
import { unwrap } from './problem.ts'

type QueryOf<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Query } } }
  ? NonNullable<Query>
  : never

/** The paths of lists that have a cursor. */
export type ListPath = {
  [Path in keyof paths]: 'cursor' extends keyof QueryOf<Path>
    ? Path extends `${string}{${string}`
      ? never
      : Path
    : never
}[keyof paths]

/** Filters, sort keys and page size of a list. */
export type ListQuery<Path extends ListPath> = Omit<QueryOf<Path>, 'cursor' | 'page'>

/** One record of a list. */
export type ListedRecord<Path extends ListPath> = paths[Path] extends {
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
 * given. Throws AccordProblem.
 */
export async function* listAll<Path extends ListPath>(
  client: AccordClient,
  path: Path,
  query?: ListQuery<Path>,
): AsyncGenerator<ListedRecord<Path>, void> {
  // The types of openapi-fetch cannot resolve a path that is a type parameter.
  const get = client.GET as unknown as (
    path: string,
    init: { params: { query: object } },
  ) => Promise<{ data?: Page; error?: unknown; response: Response }>
  let cursor: string | null | undefined = ''
  while (cursor !== null && cursor !== undefined) {
    const page: Page = await unwrap(get(path, { params: { query: { per_page: 100, ...query, cursor } } }))
    yield* page.data as ListedRecord<Path>[]
    cursor = page.meta.next_cursor
  }
}
