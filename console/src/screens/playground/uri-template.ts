/** Fills in the variables of an address (RFC 6570), as far as they are texts: that is all that a form of variables holds. */

const reserved = /[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]/

interface Operator {
  readonly first: string
  readonly between: string
  readonly named: boolean
  readonly open: boolean
}

const operators: Readonly<Record<string, Operator>> = {
  '': { first: '', between: ',', named: false, open: false },
  '+': { first: '', between: ',', named: false, open: true },
  '#': { first: '#', between: ',', named: false, open: true },
  '.': { first: '.', between: '.', named: false, open: false },
  '/': { first: '/', between: '/', named: false, open: false },
  ';': { first: ';', between: ';', named: true, open: false },
  '?': { first: '?', between: '&', named: true, open: false },
  '&': { first: '&', between: '&', named: true, open: false },
}

/** The address. Variables without a value are left out. */
export function fillTemplate(template: string, values: Readonly<Record<string, unknown>>): string {
  return template.replace(/\{([+#./;?&]?)([^{}]+)\}/g, (_, sign: string, list: string) => {
    const { first, between, named, open } = operators[sign] as Operator
    const parts = list.split(',').flatMap(written => {
      const [, name = '', most] = /^([^*:]+)\*?(?::(\d+))?$/.exec(written.trim()) ?? []
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      if (value === undefined) return []
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      const escaped = escapeText(most === undefined ? text : [...text].slice(0, Number(most)).join(''), open)
      if (!named) return [escaped]
      return [escaped === '' && sign === ';' ? name : `${name}=${escaped}`]
    })
    return parts.length === 0 ? '' : first + parts.join(between)
  })
}

function escapeText(text: string, open: boolean): string {
  if (!open)
    return encodeURIComponent(text.toWellFormed()).replace(
      /[!'()*]/g,
      each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
    )
  return [...text.toWellFormed()].map(each => (reserved.test(each) ? each : encodeURIComponent(each))).join('')
}
