/** Whether two entries say the same. What is no plain data (a function, a connection) is the same only as itself. */
export function same(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (one instanceof URL && other instanceof URL) return one.href === other.href
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, at) => same(item, other[at]))
  if (!isPlain(one) || !isPlain(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length && names.every(name => Object.hasOwn(other, name) && same(one[name], other[name]))
  )
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value))
}
