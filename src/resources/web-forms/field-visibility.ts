// Which fields of a form its visitors see.
import type { Schema } from '../../contract/types.ts'
import { isOwned } from '../attributes/lookups.ts'
import type { Attribute } from '../attributes/set.ts'
import { typeOf } from '../attributes/types.ts'

type Field = Pick<Schema<'WebFormAttribute'>, 'is_hidden'>

/** A visitor names the organization: which ones there are is not for the public. */
export const isOrganizationName = ({ isOwn, code }: Attribute, field: Field): boolean =>
  !isOwn && code === 'organization_id' && !field.is_hidden

/** Neither hidden fields nor those whose choices are records of somebody. */
export const isFieldShown = (attribute: Attribute, field: Field): boolean =>
  !field.is_hidden && (attribute.lookup === null || !isOwned(attribute.lookup) || isOrganizationName(attribute, field))

/** Whether a record cannot be without a value of it. A box that is not ticked has one. */
export const requiresValue = ({ type, isOwn, isRequired, initial }: Attribute): boolean =>
  isOwn && isRequired && initial === null && type !== 'boolean' && typeOf({ type }) !== undefined
