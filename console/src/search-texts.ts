/** Reads the query of an address: texts that a screen knows by name; anything else is left out. */
export function texts<Name extends string>(...names: readonly Name[]) {
  return (search: Record<string, unknown>): { readonly [K in Name]?: string } =>
    Object.fromEntries(
      names.filter(name => search[name] !== undefined && search[name] !== '').map(name => [name, String(search[name])]),
    ) as {
      readonly [K in Name]?: string
    }
}
