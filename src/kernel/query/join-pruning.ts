// Which rows there are, without what is shown of them: the query of a list without the joins that neither choose nor order rows, so
// that an index finds a page of ids, counts and sums. What is shown is read by these ids.
import type { JoinNode, KyselyPlugin, OperationNode, SelectQueryNode } from 'kysely'
import type { Context } from '../context.ts'
import type { Rows } from './page.ts'

/** The same rows without the joins that nothing else in the query names, to be compiled. Select first what is wanted of them. */
export const pruneJoins = <Row>(rows: Rows<Row>): Rows<Row> => rows.withPlugin(leaner)

/** The rows of it. It runs as any other query of `db`, which a query with a plugin of its own would not. */
export const executePruned = async <Row>({ db }: Pick<Context, 'db'>, rows: Rows<Row>): Promise<Row[]> =>
  (await db.executeQuery(pruneJoins(rows).compile())).rows

const leaner: KyselyPlugin = {
  transformQuery: ({ node }) => (node.kind === 'SelectQueryNode' ? withoutUnusedJoins(node as SelectQueryNode) : node),
  transformResult: async ({ result }) => result,
}

/** A left join to one row by its id neither adds rows nor takes any: it can go when nothing that is left names it. */
function withoutUnusedJoins(node: SelectQueryNode): SelectQueryNode {
  const { joins = [], ...rest } = node
  const named = new Names().add(rest)
  const kept: JoinNode[] = []
  // Backwards, because a join may stand on one before it.
  for (const join of [...joins].reverse()) {
    const alias = aliasOf(join.table)
    if (join.joinType === 'LeftJoin' && alias !== undefined && isById(join.on?.on, alias) && !named.has(alias)) continue
    named.add(join)
    kept.unshift(join)
  }
  return kept.length === joins.length ? node : { ...rest, ...(kept.length > 0 && { joins: kept }) }
}

/** Identifiers and raw text anywhere in a node. */
class Names {
  readonly #identifiers = new Set<string>()
  readonly #texts: string[] = []

  add(part: unknown): this {
    if (typeof part !== 'object' || part === null) return this
    const { kind, name, sqlFragments } = part as { kind?: string; name?: string; sqlFragments?: readonly string[] }
    if (kind === 'IdentifierNode' && name !== undefined) this.#identifiers.add(name)
    if (sqlFragments) this.#texts.push(...sqlFragments)
    for (const each of Object.values(part)) this.add(each)
    return this
  }

  has(alias: string): boolean {
    return this.#identifiers.has(alias) || this.#texts.some((text) => text.includes(alias))
  }
}

/** What a joined table is called; undefined for what is no table. */
function aliasOf(table: OperationNode): string | undefined {
  const { kind, alias, table: named } = table as unknown as Shape
  if (kind === 'AliasNode') return alias?.name
  return kind === 'TableNode' ? named?.identifier?.name : undefined
}

/** Whether a condition is `<alias>.id = …` and nothing else. */
function isById(condition: OperationNode | undefined, alias: string): boolean {
  const { kind, operator, leftOperand } = (condition ?? {}) as Shape
  const { table, column } = leftOperand ?? {}
  return (
    kind === 'BinaryOperationNode' &&
    operator?.operator === '=' &&
    table?.table?.identifier?.name === alias &&
    column?.column?.name === 'id'
  )
}

/** As much of the shape of nodes as is looked at. */
interface Shape {
  kind?: string
  name?: string
  alias?: { name?: string }
  identifier?: { name?: string }
  operator?: { operator?: string }
  leftOperand?: Shape
  table?: Shape
  column?: { column?: { name?: string } }
}
