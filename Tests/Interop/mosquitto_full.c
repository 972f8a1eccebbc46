// A plugin of mosquitto: while the file that the option `mark` names is there, each message finds the broker without memory, so that
// the broker ends the connection that it came by. With a `memory_limit` of its own mosquitto 2.0.11 stays so until it is started again.
#include <unistd.h>

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

static mosquitto_plugin_id_t *plugin;
static const char *mark;

static int on_message(int event, void *data, void *user) {
    (void)event, (void)data, (void)user;
    return access(mark, F_OK) == 0 ? MOSQ_ERR_NOMEM : MOSQ_ERR_SUCCESS;
}

int mosquitto_plugin_version(int count, const int *versions) {
    (void)count, (void)versions;
    return 5;
}

int mosquitto_plugin_init(mosquitto_plugin_id_t *identifier, void **user, struct mosquitto_opt *options, int count) {
    (void)user;
    if (count != 1) return MOSQ_ERR_INVAL;
    plugin = identifier;
    mark = options[0].value;
    return mosquitto_callback_register(plugin, MOSQ_EVT_MESSAGE, on_message, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *user, struct mosquitto_opt *options, int count) {
    (void)user, (void)options, (void)count;
    return mosquitto_callback_unregister(plugin, MOSQ_EVT_MESSAGE, on_message, NULL);
}
