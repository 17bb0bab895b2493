// Counts and sums over a list, without the joins that only add columns. SQLite omits such joins
// from a query that returns rows, but not from an aggregate.
import type { JoinNode, KyselyPlugin, OperationNode, SelectQueryNode } from 'kysely'
import type { Context } from '../context.ts'
import type { Rows } from './page.ts'

/**
 * The query without the joins that nothing in it refers to. Call it last, on a query that is only
 * compiled.
 */
export const pruneJoins = <Row>(rows: Rows<Row>): Rows<Row> => rows.withPlugin(joinPruning)

/**
 * The rows of a pruned query, run by the executor of `db`; the plugin would give the query one of
 * its own.
 */
export const executePruned = async <Row>({ db }: Pick<Context, 'db'>, rows: Rows<Row>): Promise<Row[]> =>
  (await db.executeQuery(pruneJoins(rows).compile())).rows

const joinPruning: KyselyPlugin = {
  transformQuery: ({ node }) => (node.kind === 'SelectQueryNode' ? withoutUnusedJoins(node as SelectQueryNode) : node),
  transformResult: async ({ result }) => result,
}

/**
 * A left join by id neither adds nor removes rows, so it can go unless the rest of the query refers
 * to its alias.
 */
function withoutUnusedJoins(node: SelectQueryNode): SelectQueryNode {
  const { joins = [], ...rest } = node
  const named = new Names().add(rest)
  const kept: JoinNode[] = []
  // Backwards, because a join may refer to an earlier one.
  for (const join of [...joins].reverse()) {
    const alias = aliasOf(join.table)
    if (join.joinType === 'LeftJoin' && alias !== undefined && isById(join.on?.on, alias) && !named.has(alias)) continue
    named.add(join)
    kept.unshift(join)
  }
  return kept.length === joins.length ? node : { ...rest, ...(kept.length > 0 && { joins: kept }) }
}

/** The identifiers and raw SQL anywhere in a node. */
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

/** The alias, or else the name, of a joined table. */
function aliasOf(table: OperationNode): string | undefined {
  const { kind, alias, table: named } = table as unknown as Shape
  if (kind === 'AliasNode') return alias?.name
  return kind === 'TableNode' ? named?.identifier?.name : undefined
}

/** Whether a condition is exactly `<alias>.id = …`. */
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

/** The parts of nodes that are read here. */
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
