/** How large a value is, looked at no further than needed. */

/** Whether a value has at most `limit` members and items in all. */
export function fewElements(value: unknown, limit: number): boolean {
  const stack: unknown[] = [value]
  let seen = 0
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next)
    seen += members.length
    if (seen > limit) return false
    for (const member of members) if (typeof member === 'object' && member !== null) stack.push(member)
  }
  return true
}
