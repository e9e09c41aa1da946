/** Ids of elements for things that others named: attributes that point at an element take no spaces. */
export function elementId(name: string): string {
  return encodeURIComponent(name.toWellFormed())
}
