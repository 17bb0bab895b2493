// Changes the joins of a query. `pruneJoins` removes unused joins from queries that count or sum
// the rows of a list: SQLite omits unused joins from a query that returns rows, but not from an
// aggregate query. `parentFirst` makes a joined table the first table of a query.
import {
  AndNode,
  FromNode,
  JoinNode,
  type KyselyPlugin,
  type OperationNode,
  type RawBuilder,
  type SelectQueryNode,
  type SqlBool,
  sql,
  WhereNode,
} from 'kysely'
import type { Context } from '../context.ts'
import type { Rows } from './sort-and-cursor.ts'

/**
 * Removes the joins that the rest of the query does not use. Must be the last change of the query,
 * because later changes could use a removed join.
 */
export const pruneJoins = <Row>(rows: Rows<Row>): Rows<Row> => rows.withPlugin(joinPruning)

/**
 * Runs a query without its unused joins and returns its rows. Compiles the query and runs it on
 * `db`, because Kysely would run a query with a plugin on a separate executor.
 */
export const executePruned = async <Row>({ db }: Pick<Context, 'db'>, rows: Rows<Row>): Promise<Row[]> =>
  (await db.executeQuery(pruneJoins(rows).compile())).rows

/**
 * Makes the database read a joined table first, in the order of its index, and then the rows that
 * refer to each of its rows. SQLite reads the tables of a cross join in the given order. The query
 * must exclude the rows without a joined row.
 */
export const parentFirst = <Row>(rows: Rows<Row>, alias: string): Rows<Row> =>
  rows.withPlugin(pluginFor((node) => withTableFirst(node, alias)))

/** Makes the database find the rows by a subquery of their ids, one after the other. */
export const foundByIds = <Row>(rows: Rows<Row>, id: string, ids: RawBuilder<unknown>): Rows<Row> =>
  rows
    .where(sql<SqlBool>`${sql.ref(id)} = chosen.id`)
    .withPlugin(pluginFor((node) => withIdsFirst(node, ids.as('chosen').toOperationNode())))

const pluginFor = (change: (node: SelectQueryNode) => SelectQueryNode): KyselyPlugin => ({
  transformQuery: ({ node }) => (node.kind === 'SelectQueryNode' ? change(node as SelectQueryNode) : node),
  transformResult: async ({ result }) => result,
})

const joinPruning = pluginFor(withoutUnusedJoins)

function withIdsFirst(node: SelectQueryNode, ids: OperationNode): SelectQueryNode {
  const { joins = [], from } = node
  const [child] = from?.froms ?? []
  if (!child) throw new Error('The query has no table.')
  return { ...node, from: FromNode.create([ids]), joins: [JoinNode.create('CrossJoin', child), ...joins] }
}

function withTableFirst(node: SelectQueryNode, alias: string): SelectQueryNode {
  const { joins = [], from, where } = node
  const parent = joins.find(({ table }) => aliasOf(table) === alias)
  const [child, ...others] = from?.froms ?? []
  if (!parent?.on || !child || others.length > 0) throw new Error(`The query has no join of ${alias}.`)
  return {
    ...node,
    from: FromNode.create([parent.table]),
    joins: [JoinNode.create('CrossJoin', child), ...joins.filter((join) => join !== parent)],
    where: WhereNode.create(where ? AndNode.create(parent.on.on, where.where) : parent.on.on),
  }
}

/**
 * Removes unused joins from a query node. A left join by id neither adds nor removes rows. It is
 * therefore unused if the rest of the query does not refer to its alias.
 */
function withoutUnusedJoins(node: SelectQueryNode): SelectQueryNode {
  const { joins = [], ...rest } = node
  const named = new Names().add(rest)
  const kept: JoinNode[] = []
  // The loop runs from the last join to the first, because a join may refer to an earlier join.
  for (const join of [...joins].reverse()) {
    const alias = aliasOf(join.table)
    if (join.joinType === 'LeftJoin' && alias !== undefined && isById(join.on?.on, alias) && !named.has(alias)) continue
    named.add(join)
    kept.unshift(join)
  }
  return kept.length === joins.length ? node : { ...rest, ...(kept.length > 0 && { joins: kept }) }
}

/** The identifiers and raw SQL texts that query nodes contain. */
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

/** Returns the alias of a joined table, or the table's name when there is no alias. */
function aliasOf(table: OperationNode): string | undefined {
  const { kind, alias, table: named } = table as unknown as Shape
  if (kind === 'AliasNode') return alias?.name
  return kind === 'TableNode' ? named?.identifier?.name : undefined
}

/** Returns whether a condition is exactly `<alias>.id = …`. */
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

/** The properties of query nodes that this file reads. */
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
