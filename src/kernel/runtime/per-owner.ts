// Attaches a value, such as a cache, to an object, such as a store. The value is garbage-collected
// together with its object.

/** Returns a getter for the value of an owner. The first call for an owner creates the value. */
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
