import { Purser } from "@purser/purser"

const request = new Request("http://127.0.0.1/webhooks", { method: "POST", body: "{}" })
// #region
const purser = await Purser.make() // PURSER_WEBHOOK_SECRET=whsec_… in the environment
const response = await purser.webhooks(request) // a Request whose body nobody has read
// #endregion
console.log(response.status)
await purser.close()
