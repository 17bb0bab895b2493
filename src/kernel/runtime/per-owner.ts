// A value that belongs to an object and is collected together with it, such as the cache of a
// store.

/** Returns a function that returns the value of an owner, creating it on the first call. */
export function perOwner<Owner extends object, Value>(create: (owner: Owner) => Value): (owner: Owner) => Value {
  const values = new WeakMap<Owner, Value>()
  return (owner) => {
    const known = values.get(owner)
    if (known !== undefined) return known
    const created = create(owner)
    values.set(owner, created)
    return created
  }
}
