// All handlers of all slices as one object: an operation of the contract without a handler does not compile. The resources
// are listed too, because every path below `/{id}` looks its record up through them (DOMAIN 4.3).
import { type OperationFact, operations } from './contract/operations.gen.ts'
import type { OperationId } from './contract/types.ts'
import type { Context } from './kernel/context.ts'
import type { Handlers } from './kernel/handler.ts'
import { pending } from './pending.ts'
import type { Locators } from './pipeline.ts'
import { handlers as account } from './resources/account/handlers.ts'
import { activities, handlers as activityHandlers, inheritedActivities } from './resources/activities/resource.ts'
import { handlers as authentication } from './resources/authentication/handlers.ts'
import { handlers as groupHandlers, groups } from './resources/groups/resource.ts'
import { handlers as leadHandlers, subLists as leadsBelow, locateLine } from './resources/leads/handlers.ts'
import { leads } from './resources/leads/resource.ts'
import { handlers as organizationHandlers, organizations } from './resources/organizations/resource.ts'
import { handlers as personHandlers } from './resources/persons/handlers.ts'
import { persons } from './resources/persons/resource.ts'
import { handlers as pipelineHandlers, pipelines } from './resources/pipelines/resource.ts'
import { handlers as productHandlers, products } from './resources/products/resource.ts'
import { handlers as roleHandlers, roles } from './resources/roles/resource.ts'
import { handlers as sourceHandlers, sources } from './resources/sources/resource.ts'
import { handlers as system } from './resources/system/handlers.ts'
import { handlers as tagHandlers, tags } from './resources/tags/resource.ts'
import { handlers as tokenHandlers, tokens } from './resources/tokens/handlers.ts'
import { handlers as typeHandlers, types } from './resources/types/resource.ts'
import { userHandlers, users } from './resources/users/resource.ts'

/** What users own, for a deletion that hands it on. */
const owned = () => [leads, persons, organizations, inheritedActivities]

export const handlers: Handlers = {
  ...authentication,
  ...account,
  ...tokenHandlers,
  ...leadHandlers,
  ...leadsBelow,
  ...personHandlers,
  ...organizationHandlers,
  ...productHandlers,
  ...activityHandlers,
  ...tagHandlers,
  ...sourceHandlers,
  ...typeHandlers,
  ...pipelineHandlers,
  ...userHandlers(owned),
  ...roleHandlers,
  ...groupHandlers,
  ...system,
  ...pending,
}

interface Locatable {
  locate(ctx: Context, id: number): Promise<void>
}

const shown: Partial<Record<OperationId, Locatable>> = {
  getToken: tokens,
  getLead: leads,
  getPerson: persons,
  getOrganization: organizations,
  getProduct: products,
  getActivity: activities,
  getTag: tags,
  getSource: sources,
  getType: types,
  getPipeline: pipelines,
  getUser: users,
  getRole: roles,
  getGroup: groups,
}

const pathOf = (operation: OperationId): string => (operations[operation] satisfies OperationFact).path

/** Path of a record, or of a link below one, to the function that finds it, or throws 404 or 412. */
export const locators: Locators = {
  ...Object.fromEntries(
    Object.entries(shown).map(([operation, resource]) => [pathOf(operation as OperationId), resource.locate]),
  ),
  [pathOf('updateLeadProduct')]: locateLine,
}
