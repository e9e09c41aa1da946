/** A long list of names by their common beginnings, so that two thousand tools are a page of groups. */
import type { Offer } from '#contract'

/** A line of the list: a group, or something that is offered. */
export type OfferLine =
  | { readonly kind: 'group'; readonly key: string; readonly prefix: string; readonly count: number; readonly open: boolean }
  | { readonly kind: 'offer'; readonly key: string; readonly offer: Offer; readonly inGroup: boolean }

/** Shorter lists are read faster than they are unfolded. */
const leastGrouped = 16

/** `cart_` of `cart_add`, `notes://work/` of an address; the whole name where nothing divides it. */
export function prefixOf(name: string): string {
  return /^[a-z][\w+.-]*:\/\/[^/]*\/?/i.exec(name)?.[0] ?? /^[^_./:-]*[_./:-]/.exec(name)?.[0] ?? name
}

/**
 * The lines of a list. Groups are closed at first, but for those that a person opened; with a filter everything that fits is there.
 */
export function offerLines(offers: readonly Offer[], filter: string, turned: ReadonlySet<string>): readonly OfferLine[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  const fitting = offers.filter(({ name, title = '', description = '' }) => {
    const text = `${name} ${title} ${description}`.toLowerCase()
    return words.every(word => text.includes(word))
  })
  if (fitting.length < leastGrouped) return fitting.map(offer => line(offer, false))
  const lines: OfferLine[] = []
  for (const [prefix, group] of Map.groupBy(fitting, ({ name }) => prefixOf(name))) {
    if (group.length === 1) lines.push(...group.map(offer => line(offer, false)))
    else {
      const open = words.length > 0 || turned.has(prefix)
      lines.push({ kind: 'group', key: `group ${prefix}`, prefix, count: group.length, open })
      if (open) lines.push(...group.map(offer => line(offer, true)))
    }
  }
  return lines
}

const line = (offer: Offer, inGroup: boolean): OfferLine => ({ kind: 'offer', key: keyOfOffer(offer), offer, inGroup })

/** Names are unique within their kind. */
export function keyOfOffer({ kind, name }: Pick<Offer, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}
