/** Nothing is required: Workers that imitate Node imitate any version of it. */
export {}
