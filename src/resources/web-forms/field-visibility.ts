// Decides which fields of a form visitors see.
import type { Schema } from '../../contract/types.ts'
import type { Attribute } from '../attributes/attribute-set.ts'
import { isOwned } from '../attributes/lookups.ts'
import { valueTypeOf } from '../attributes/types.ts'

type Field = Pick<Schema<'WebFormAttribute'>, 'is_hidden'>

/**
 * Returns whether the field is the organization of a person. Visitors type the name of the
 * organization, because the list of organizations is not public.
 */
export const isOrganizationName = ({ isOwn, code }: Attribute, field: Field): boolean =>
  !isOwn && code === 'organization_id' && !field.is_hidden

/**
 * Returns whether visitors see the field. Hidden fields are not shown. Fields whose choices are
 * records with an owner are not shown either, except the name of the organization.
 */
export const isFieldShown = (attribute: Attribute, field: Field): boolean =>
  !field.is_hidden && (attribute.lookup === null || !isOwned(attribute.lookup) || isOrganizationName(attribute, field))

/**
 * Returns whether a record must have a value of the attribute. A checkbox always has a value,
 * because an unticked checkbox means false.
 */
export const requiresValue = ({ type, isOwn, isRequired, initial }: Attribute): boolean =>
  isOwn && isRequired && initial === null && type !== 'boolean' && valueTypeOf({ type }) !== undefined
